"""Lists facts and word pairs that sessions of unrelated projects share.

Each one occurred in sessions of three or more projects of a training set. Paths in a user's home
folder are left out, since no other project has them.
"""

from .anchors import find_anchors, list_carried_keys

_FACTS = """
    $CODEX_HOME $SkillName --agent --all --amend --base --body --branch --cached --check
    --decorate --files --force --force-with-lease --format --git --global --grep --hard --head
    --help --include --jq --json --list --name-only --oneline --prefix --prune --short
    --show-current --stat --strict --tags --title --version .claude/settings.json
    .codex-plugin/plugin.json .codex/skills/.system/imagegen/SKILL.md
    .codex/skills/.system/openai-docs/SKILL.md .codex/skills/.system/plugin-creator/SKILL.md
    .codex/skills/.system/skill-creator/SKILL.md .codex/skills/.system/skill-installer/SKILL.md
    .entire/.gitignore .entire/settings.json .git .github/workflows/ci.yml
    .github/workflows/release.yml .openai/hosting.json /CODE_QUALITY /CURSOR_SUMMARY
    /ENVIRONMENT_SETUP /EXTERNAL_SERVICES /FILE_SYSTEM_GUIDELINES /PROBLEM_SOLVING_WORKFLOW
    /PROCESS_MANAGEMENT /PULL_REQUESTS /SECURITY_RISK_ASSESSMENT /VERSION_CONTROL /abs/path/My
    /abs/path/app.py /absolute/path /absolute/path.png /app-context /apps_instructions
    /collaboration_mode /command-args /command-message /command-name /current_date /dev/null
    /environment_context /issue_description /local-command-caveat /local-command-stdout
    /path/to/foo.ts /permission_profile /plugins_instructions /skills_instructions /usr/bin/env
    /workspace_roots 0.0000seconds 0.00s 10000 100644 11files 12000 120000 127.0.0.1 14files
    16000 20000 22000 2KB 2files 3.12.9 30000 300000 30s 3files 4files 50% 50000 5files 60000
    6files 70lines 7files 8.2.1 8.2.2 8.2.3 8files 8px 9files AGENTS.md AskUserQuestion
    AttributeError BufReader CHANGELOG.md CLAUDE.md CODE_OF_CONDUCT.md CONTRIBUTING.md
    CodeRabbit FETCH_HEAD GITHUB_TOKEN GitHub GitLab HTML/CSS/canvas Images/Visuals/Files
    ImportError LinkedIn ModuleNotFoundError Node.js OpenAI OpenHands PostToolUse PowerPoint
    README.md README.rst Report.md SVG/Three.js/etc SVG/vector/code-native SessionStart Three.js
    TypeError UserPromptSubmit ValueError WebFetch WebSearch __init__.py __main__.py
    _call_with_frames_removed agent_id apply_patch author_association automation_update
    avatar_url baseRefName bash beige/cream/sand/tan brand/product/place/object
    brand/product/place/person brown/orange/espresso capture_output codex_apps
    commands/paths/env comments commit_id conf.py config config.toml configuration.md
    conftest.py connector_id core create_thread createdAt created_at duration_ms
    entire/checkpoints/v1 events_url exec_command exec_module execute_bash exit_code file.txt
    file_fix.py file_path file_simple.py file_system file_test.py find_in_page followers_url
    following_url fork_thread full.jsonl gists_url go.mod gravatar_id handoff_thread headRefName
    html_url https:// https://example.com import_module in_progress index.rst isDraft
    is_absolute is_file list_mcp_resource_templates list_mcp_resources list_threads
    load_workspace_dependencies logo.png logo.svg macOS main_resource make.bat mcp__server__tool
    mergeCommit mergedAt metadata mise.toml mod.rs multi_tool_use.parallel nTesting nThis
    node_id node_modules open_page organizations_url origin/main...HEAD origin/main..HEAD
    original_line package.json pendingWorktreeId plugin_name project pull_request
    pull_request_url purple/purple-blue pyproject.toml python read_thread received_events_url
    refs/heads/main remotes/origin/HEAD remotes/origin/main render_docx.py repo repos_url
    request_user_input requirements.txt reviews sandbox_mode sandbox_permissions
    save/download/zoom security_risk send_message_to_thread session_id set_thread_archived
    set_thread_pinned set_thread_title settings.local.json setup.cfg setup.py shellcheck
    site_admin skills/control-chrome/SKILL.md skills/control-in-app-browser/SKILL.md
    skills/documents/SKILL.md skills/pdf/SKILL.md skills/presentations/SKILL.md
    skills/sites-building/SKILL.md skills/sites-hosting/SKILL.md skills/spreadsheets/SKILL.md
    skills/template-creator/SKILL.md sliders/steppers/inputs snake_case src/config.rs
    starred_url startLine started_at starts_with str_replace str_replace_editor submittedAt
    subscriptions_url test.md test_edge_cases test_original_issue threadId tmp_path to_string
    tool_result tool_search tool_use_id tools_search total_tokens tox.ini updated_at
    user_view_type v0.11.0 v0.2.6 v0.4.15 v0.5.0 v0.5.2 v0.7.0 v0.7.1 v0.9.1 v1.0.0 v1.1.1
    v2.14.0 v3.27.0 web_search worktrees write_stdin
"""
"""Some of them with parts that are generic as well, such as the tails of a path."""
_PAIRS = """
    account+take actual+behavior addressed+fully against+main,open
    already+available,dependencies,environment,fixed,imported,installed,taken
    anything+broken,needed approach+different available+tools,using back+fall
    backward+compatibility,maintain because+failed,fails behavior+expected below+generated
    best+hightlight,practices,words
    branch+already,clean,commit,created,current,default,https,local,main,pushed,ready,state
    care+taken case+edge cases+edge changed+functions
    changes+base,care,compare,directory,focused,minimal,necessary,repository,review
    check+changes,commit,commits,confirm,correct,current,does,existing,first,issues,name,same
    check+status,wait,where checking+base,exact,whether,without classes+keywords
    clean+everything,worktree clear+terms clearer+reword,terms clearly+best,state command+entire
    commands+respond commit+base,docs,made,stage committing+staging completed+successfully
    completeness+important,quality comprehensive+coverage confirm+reproducing
    consider+following,otherwise,response,tools correct+looks correctly+working
    coverage+regression,unit create+comprehensive,final,implementing,minimal,perfect,script,simpler
    current+implementation,looking,state described+means description+compare development+mode
    diff+exactly,staged directly+python,source,without directory+explore,itself,paths doesn+require
    ensure+comprehensive,directory,fully,haven,modified,satisfied
    environment+anything,install,python,setting error+handling,keywords,returns
    errors+message,method even+though exact+scenario existing+break,functionality,logic,look,update
    explicitly+asks exploration+thorough express+snippets,words fail+revise feedback+address
    figure+iterate final+summary fine+reasoning,thinking first+read fixing+start
    follow+phases,readme full+build,suite function+called,update,uses haven+broken
    hightlight+message https+updated implement+chosen,help,necessary
    implementation+revise,thoroughly,until implementing+solution important+brevity
    install+installed,packages
    issue+changes,described,description,exact,explain,fixed,fixing,following,found,function
    issue+located,location,look,maybe,methods,might,original,reproduces,reproducing,resolve
    issue+scenario,specific,verify,where issues+having lengthy+process,quality likely+most
    local+commands,running,uses,whether location+likely locations+select
    look+actual,function,history,where made+change messages+below,caveat,error,otherwise,respond
    methods+classes,propose,relevant might+suggests minimal+focused,reproduction,task
    modify+explore,means,using most+select names+method,stack,variables normalization+path
    open+push paths+absolute,relative pattern+match,matching,same perfect+found
    phase+creating,edit,find,finding,implementing,install,read,setting,state,testing
    phase+understanding phases+resolve possible+locations,solutions practices+conventions,take
    problem+carefully,clear,clearly,description,explain,located,location,possible,read,related
    problem+reproduce,reword,solution,statement,understanding,where process+thinking
    python+access,development related+find,finding,identify,modified relevant+search
    repository+directory,python,related,requirements,understand reproduce+steps reproduces+located
    reproduction+adjust,creating requirements+addressed,specified response+unless
    review+feedback,threads root+cause,filesystem running+while
    script+confirm,ensure,necessary,reproduce,reproduces,reproduction,verify search+grep
    snippets+config solution+chosen source+edit,exists,implement,work stack+traces steps+enumerate
    still+pass,running,uses,work,works technical+details,traces
    test+actual,actually,added,already,behavior,both,case,cases,changes,check,clean,clearly
    test+comprehensive,coverage,create,creating,described,directly,doesn,execution,existing
    test+first,format,full,implementation,integration,looking,mise,output,passes,paths,patterns
    test+phase,regression,repository,reproduces,running,script,shows,simple,simpler,suite,tests
    test+understand,unit,uses,verify,work
    testing+account,exploration,fixing,implementation,logic,modify,reasoning
    tests+added,check,create,directly,existing,fail,figure,first,focused,full,haven,install
    tests+integration,logic,look,pass,passed,related,repository,running,still,understand,unit
    tests+until,using type+disabled,root,scope,unrestricted
    understand+codebase,current,perfect,structure
    user+explicitly,generated,interrupted,mentioned,unless,wants,while verify+reproduce,works
    versa+vice where+clearly,exactly,find whether+decide while+keeping without+needing
    work+correctly,doesn working+excellent works+both,correctly
"""
"""Each word before a plus sign makes a pair with each of the words after it."""

GENERIC_KEYS = frozenset(_FACTS.split()).union(
    *(list_carried_keys(fact) for fact in find_anchors(_FACTS))
)
GENERIC_PAIRS = frozenset(
    (min(first, second), max(first, second))
    for group in _PAIRS.split()
    for first, _, others in [group.partition("+")]
    for second in others.split(",")
)
"""Pairs of plain words, each in alphabetical order."""
