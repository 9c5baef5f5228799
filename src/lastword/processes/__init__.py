"""Processes and threads: children that end with their owner, locks that show which process runs, ports, loops.

Read in this order: `process_lock` (is a process alive, end it), `warden` (a process that ends the brokers with their
owner), `ports` (free ports, ports in TIME_WAIT), `background_loop` (threads).
"""
