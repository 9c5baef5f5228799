"""The verbs about this machine: `up`, `down`, `status`, `broker`.

Read in this order: `this_machine`, `broker_users`, `broker`, `try_commands`, `up_status`, `bring_up`, `up`.
"""
