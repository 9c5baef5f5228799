"""Helpers that several tests share: generated logs, the command line as a process, servers, waiting."""
