"""`make demo`: a job that is killed in front of you and goes on as if nothing had happened."""
