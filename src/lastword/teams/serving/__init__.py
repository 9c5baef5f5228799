"""The board as a guest of the HTTP server: its routes, its stream and its part of the OpenAPI document.

Read in this order: `board_paths`, `served_status`, `board_guest`.
"""
