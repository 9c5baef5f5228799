"""The service as an OpenAPI document, made from the table of routes and the Structs of core.shapes.

Read in this order: `schemas` (from the Structs, with what codecs decide), `examples`, `parameters`, `operations`,
`document`.
"""
