"""Processes of this machine: children that end with their owner, locks that tell who runs, ports.

Read in this order: `ports`, `process_lock`, `warden`.
"""
