"""Lists facts and word pairs that sessions of unrelated projects share.

Each one occurred in sessions of three or more projects of a training set. Paths in a user's home
folder are left out, since no other project has them.
"""

_KEYS = """
    $CODEX_HOME $SkillName --agent --all --amend --base --body --branch --cached --check --decorate
    --files --force --force-with-lease --format --git --global --grep --hard --head --help
    --include --jq --json --list --name-only --oneline --prefix --prune --short --show-current
    --stat --strict --tags --title --version .claude/settings.json .codex-plugin/plugin.json
    .codex/skills/.system/imagegen/SKILL.md .codex/skills/.system/openai-docs/SKILL.md
    .codex/skills/.system/plugin-creator/SKILL.md .codex/skills/.system/skill-creator/SKILL.md
    .codex/skills/.system/skill-installer/SKILL.md .entire/.gitignore .entire/settings.json .git
    .github/workflows/ci.yml .github/workflows/release.yml .gitignore .openai/hosting.json
    .system/imagegen/SKILL.md .system/openai-docs/SKILL.md .system/plugin-creator/SKILL.md
    .system/skill-creator/SKILL.md .system/skill-installer/SKILL.md /CODE_QUALITY /CURSOR_SUMMARY
    /ENVIRONMENT_SETUP /EXTERNAL_SERVICES /FILE_SYSTEM_GUIDELINES /PROBLEM_SOLVING_WORKFLOW
    /PROCESS_MANAGEMENT /PULL_REQUESTS /SECURITY_RISK_ASSESSMENT /VERSION_CONTROL /abs/path/My
    /abs/path/app.py /absolute/path /absolute/path.png /app-context /apps_instructions
    /collaboration_mode /command-args /command-message /command-name /current_date /dev/null
    /environment_context /issue_description /local-command-caveat /local-command-stdout
    /path/to/foo.ts /permission_profile /plugins_instructions /skills_instructions /usr/bin/env
    /workspace_roots 0.0000seconds 0.00s 10000 100644 11files 12000 120000 127.0.0.1 14files 16000
    20000 22000 2KB 2files 3.12.9 30000 300000 30s 3files 4files 50% 50000 5files 60000 6files
    70lines 7files 8.2.1 8.2.2 8.2.3 8files 8px 9files AGENTS.md AskUserQuestion AttributeError
    BufReader CHANGELOG.md CLAUDE.md CODE_OF_CONDUCT.md CODE_QUALITY CONTRIBUTING.md CSS/canvas
    CURSOR_SUMMARY CodeRabbit ENVIRONMENT_SETUP EXTERNAL_SERVICES FETCH_HEAD FILE_SYSTEM_GUIDELINES
    Files GITHUB_TOKEN GitHub GitLab HEAD HTML/CSS/canvas Images/Visuals/Files ImportError LinkedIn
    ModuleNotFoundError Node.js OpenAI OpenHands PROBLEM_SOLVING_WORKFLOW PROCESS_MANAGEMENT
    PULL_REQUESTS PostToolUse PowerPoint README.md README.rst Report.md SECURITY_RISK_ASSESSMENT
    SKILL.md SVG/Three.js/etc SVG/vector/code-native SessionStart Three.js Three.js/etc TypeError
    UserPromptSubmit VERSION_CONTROL ValueError Visuals/Files WebFetch WebSearch __init__.py
    __main__.py _call_with_frames_removed abs/path/My abs/path/app.py absolute/path
    absolute/path.png agent_id app-context app.py apply_patch apps_instructions author_association
    automation_update avatar_url baseRefName bash beige/cream/sand/tan bin/env
    brand/product/place/object brand/product/place/person brown/orange/espresso canvas
    capture_output checkpoints/v1 ci.yml code-native codex_apps collaboration_mode command-args
    command-message command-name commands/paths/env comments commit_id conf.py config config.rs
    config.toml configuration.md conftest.py connector_id control-chrome/SKILL.md
    control-in-app-browser/SKILL.md core cream/sand/tan create_thread createdAt created_at
    current_date dev/null documents/SKILL.md download/zoom duration_ms entire/checkpoints/v1
    environment_context espresso events_url exec_command exec_module execute_bash exit_code
    file.txt file_fix.py file_path file_simple.py file_system file_test.py find_in_page
    followers_url following_url foo.ts fork_thread full.jsonl gists_url go.mod gravatar_id
    handoff_thread headRefName heads/main hosting.json html_url https:// https://example.com
    imagegen/SKILL.md import_module in_progress index.rst inputs isDraft is_absolute is_file
    issue_description list_mcp_resource_templates list_mcp_resources list_threads
    load_workspace_dependencies local-command-caveat local-command-stdout logo.png logo.svg macOS
    main main...HEAD main..HEAD main_resource make.bat mcp__server__tool mergeCommit mergedAt
    metadata mise.toml mod.rs multi_tool_use multi_tool_use.parallel nTesting nThis node_id
    node_modules null object open_page openai-docs/SKILL.md orange/espresso organizations_url
    origin/HEAD origin/main origin/main...HEAD origin/main..HEAD original_line package.json path
    path.png path/My path/app.py path/to/foo.ts paths/env pdf/SKILL.md pendingWorktreeId
    permission_profile person place/object place/person plugin-creator/SKILL.md plugin.json
    plugin_name plugins_instructions presentations/SKILL.md product/place/object
    product/place/person project pull_request pull_request_url purple-blue purple/purple-blue
    pyproject.toml python read_thread received_events_url refs/heads/main release.yml
    remotes/origin/HEAD remotes/origin/main render_docx.py repo repos_url request_user_input
    requirements.txt reviews sand/tan sandbox_mode sandbox_permissions save/download/zoom
    security_risk send_message_to_thread session_id set_thread_archived set_thread_pinned
    set_thread_title settings.json settings.local.json setup.cfg setup.py shellcheck site_admin
    sites-building/SKILL.md sites-hosting/SKILL.md skill-creator/SKILL.md skill-installer/SKILL.md
    skills/.system/imagegen/SKILL.md skills/.system/openai-docs/SKILL.md
    skills/.system/plugin-creator/SKILL.md skills/.system/skill-creator/SKILL.md
    skills/.system/skill-installer/SKILL.md skills/control-chrome/SKILL.md
    skills/control-in-app-browser/SKILL.md skills/documents/SKILL.md skills/pdf/SKILL.md
    skills/presentations/SKILL.md skills/sites-building/SKILL.md skills/sites-hosting/SKILL.md
    skills/spreadsheets/SKILL.md skills/template-creator/SKILL.md skills_instructions
    sliders/steppers/inputs snake_case spreadsheets/SKILL.md src/config.rs starred_url startLine
    started_at starts_with steppers/inputs str_replace str_replace_editor submittedAt
    subscriptions_url template-creator/SKILL.md test.md test_edge_cases test_original_issue
    threadId tmp_path to/foo.ts to_string tool_result tool_search tool_use_id tools_search
    total_tokens tox.ini updated_at user_view_type usr/bin/env v0.11.0 v0.2.6 v0.4.15 v0.5.0 v0.5.2
    v0.7.0 v0.7.1 v0.9.1 v1.0.0 v1.1.1 v2.14.0 v3.27.0 vector/code-native web_search
    workflows/ci.yml workflows/release.yml workspace_roots worktrees write_stdin zoom
"""
_PAIRS = """
    absolute+paths access+python account+take account+testing actual+behavior actual+look
    actual+test actually+test added+test added+tests address+feedback addressed+fully
    addressed+requirements adjust+reproduction against+main against+open already+available
    already+branch already+dependencies already+environment already+fixed already+imported
    already+installed already+taken already+test anything+broken anything+environment
    anything+needed approach+different asks+explicitly available+tools available+using back+fall
    backward+compatibility backward+maintain base+changes base+checking base+commit because+failed
    because+fails behavior+expected behavior+test below+generated below+messages best+clearly
    best+hightlight best+practices best+words both+test both+works branch+clean branch+commit
    branch+created branch+current branch+default branch+https branch+local branch+main
    branch+pushed branch+ready branch+state break+existing brevity+important broken+haven
    build+full called+function care+changes care+taken carefully+problem case+edge case+test
    cases+edge cases+test cause+root caveat+messages change+made changed+functions changes+check
    changes+compare changes+directory changes+focused changes+issue changes+minimal
    changes+necessary changes+repository changes+review changes+test check+commit check+commits
    check+confirm check+correct check+current check+does check+existing check+first check+issues
    check+name check+same check+status check+test check+tests check+wait check+where checking+exact
    checking+whether checking+without chosen+implement chosen+solution classes+keywords
    classes+methods clean+everything clean+test clean+worktree clear+problem clear+terms
    clearer+reword clearer+terms clearly+problem clearly+state clearly+test clearly+where
    codebase+understand command+entire commands+local commands+respond commit+docs commit+made
    commit+stage committing+staging compare+description completed+successfully
    completeness+important completeness+quality comprehensive+coverage comprehensive+create
    comprehensive+ensure comprehensive+test config+snippets confirm+reproducing confirm+script
    consider+following consider+otherwise consider+response consider+tools conventions+practices
    correct+looks correctly+work correctly+working correctly+works coverage+regression
    coverage+test coverage+unit create+final create+implementing create+minimal create+perfect
    create+script create+simpler create+test create+tests creating+phase creating+reproduction
    creating+test current+implementation current+looking current+state current+understand
    decide+whether described+issue described+means described+test description+issue
    description+problem details+technical development+mode development+python diff+exactly
    diff+staged directly+python directly+source directly+test directly+tests directly+without
    directory+ensure directory+explore directory+itself directory+paths directory+repository
    disabled+type doesn+require doesn+test doesn+work edit+phase edit+source ensure+fully
    ensure+haven ensure+modified ensure+satisfied ensure+script enumerate+steps environment+install
    environment+python environment+setting error+handling error+keywords error+messages
    error+returns errors+message errors+method even+though exact+issue exact+scenario exactly+where
    excellent+working execution+test existing+functionality existing+logic existing+look
    existing+test existing+tests existing+update exists+source explain+issue explain+problem
    explicitly+user exploration+testing exploration+thorough explore+modify express+snippets
    express+words fail+revise fail+tests feedback+review figure+iterate figure+tests
    filesystem+root final+summary find+phase find+related find+where finding+phase finding+related
    fine+reasoning fine+thinking first+read first+test first+tests fixed+issue fixing+issue
    fixing+start fixing+testing focused+minimal focused+tests follow+phases follow+readme
    following+issue format+test found+issue found+perfect full+suite full+test full+tests
    function+issue function+look function+update function+uses generated+user grep+search
    haven+tests having+issues help+implement hightlight+message history+look https+updated
    identify+related implement+necessary implement+source implementation+revise implementation+test
    implementation+testing implementation+thoroughly implementation+until implementing+phase
    implementing+solution install+installed install+packages install+phase install+tests
    integration+test integration+tests interrupted+user issue+located issue+location issue+look
    issue+maybe issue+methods issue+might issue+original issue+reproduces issue+reproducing
    issue+resolve issue+scenario issue+specific issue+verify issue+where keeping+while
    lengthy+process lengthy+quality likely+location likely+most local+running local+uses
    local+whether located+problem located+reproduces location+problem locations+possible
    locations+select logic+testing logic+tests look+tests look+where looking+test match+pattern
    matching+pattern means+modify mentioned+user messages+otherwise messages+respond method+names
    methods+propose methods+relevant might+suggests minimal+reproduction minimal+task mise+test
    modified+related modify+testing modify+using most+select names+stack names+variables
    necessary+script needing+without normalization+path open+push output+test pass+still pass+tests
    passed+tests passes+test paths+relative paths+test pattern+same patterns+test
    perfect+understand phase+read phase+setting phase+state phase+test phase+testing
    phase+understanding phases+resolve possible+problem possible+solutions practices+take
    problem+read problem+related problem+reproduce problem+reword problem+solution
    problem+statement problem+understanding problem+where process+thinking python+repository
    reasoning+testing regression+test related+repository related+tests relevant+search
    repository+requirements repository+test repository+tests repository+understand reproduce+script
    reproduce+steps reproduce+verify reproduces+script reproduces+test reproduction+script
    requirements+specified response+unless review+threads root+type running+still running+test
    running+tests running+while scope+type script+test script+verify shows+test simple+test
    simpler+test source+work stack+traces still+tests still+uses still+work still+works
    structure+understand suite+test technical+traces test+tests test+understand test+unit test+uses
    test+verify test+work tests+understand tests+unit tests+until tests+using type+unrestricted
    unless+user user+wants user+while verify+works versa+vice
"""

GENERIC_KEYS = frozenset(_KEYS.split())
GENERIC_PAIRS = frozenset(
    (first, second) for pair in _PAIRS.split() for first, second in [pair.split("+")]
)
"""Pairs of plain words, each in alphabetical order."""
