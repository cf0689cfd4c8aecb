"""The program that agents run at their own events. Nothing here imports the SDK, a model, or more than it needs."""
