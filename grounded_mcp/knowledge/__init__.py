"""What is known with evidence: claims, the scripts behind them, attempts, and how far each is to be trusted."""
