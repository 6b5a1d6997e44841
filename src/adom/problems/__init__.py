"""The local functions f_i: values, gradients, constants, exact solutions and the dual oracle."""
