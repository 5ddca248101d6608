"""The command `firesteel`: one module for each of its commands."""
