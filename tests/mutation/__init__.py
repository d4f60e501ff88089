"""Would a test have seen it? `make mutants FILES=...` changes a file in hundreds of small ways, and names the changes no test sees.

mutmut makes the mutants and runs the tests; here is what it is given (a copy of the tree, and which tests) and what it found.
"""
