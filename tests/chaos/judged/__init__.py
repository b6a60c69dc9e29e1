"""What came of it, from outside: `evidence` of the cloud's and the jobs' logs, judged, and told."""
