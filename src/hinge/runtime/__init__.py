"""What everything stands on: the compiler, threads, memory, requests to stop."""
