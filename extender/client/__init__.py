"""The only room that talks to the API server, or to the embedded one that stands in for it.

`interface` is the contract; `connection` (real) and `embedded` (in memory) fulfil it; reflector and informer work on either.
"""
