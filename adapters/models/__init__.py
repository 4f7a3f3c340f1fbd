"""What is known of models: names, limits, prices, and how they count."""
