"""Processes and threads: children that end with their owner, locks that tell who runs, ports, background loops.

Read in this order: `background_loop` (threads), `ports`, `process_lock`, `warden`.
"""
