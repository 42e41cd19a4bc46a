"""What a worker process shows of itself: metrics, health, logs and traces. A build never waits for any of it."""
