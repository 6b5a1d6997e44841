"""`adom bench`: run all methods on a fixed suite of problems and networks; compare with results of others."""
