"""The edge to real models: what goes out to a provider, and what comes back."""
