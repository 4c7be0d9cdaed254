"""Golden data for joins and splits: python golden/joins.py, in tensor/optest."""

from golden import ALL, FEW, U, In, call, ints, write

x, y, z = In((2, 3)), In((2, 1)), In((2, 0))
for arrays in ([x, y, z], [z, x], [x]):
    call("concatenate", arrays, axis=1, dtypes=FEW)
    call("concat", arrays, axis=1)
call("concat", [In((2, 3)), In((2, 3))])
call("concatenate", [In((2, 3), U, "float16"), In((2, 2), ints(0, 9), "int32")], axis=1)
call("concatenate", [In((2, 3)), In((1, 3)), In((2, 3))], dtypes=ALL)
call("concatenate", [x, y], axis=None, dtypes=FEW)
for arrays in ([In((2, 3)), In((2, 3))], [In(()), In(())], [In((2, 0)), In((2, 0)), In((2, 0))], [In((2, 3))]):
    call("stack", arrays, axis=-1, dtypes=FEW)
call("stack", [In((2, 3)), In((2, 3))], dtypes=FEW)
for shape in ((3, 4), (2, 0), (1, 6, 2)):
    call("split", In(shape), 2, axis=1, dtypes=FEW)
for shape in ((3, 4), (5,), (2, 0)):
    call("split", In(shape), [2, 1, -1, 9], axis=-1, dtypes=FEW)
call("split", In((4, 3)), 2)
call("split", In((4, 3)), [1])
call("split", In((4, 3)), 3)
for shape in ((3, 4), (5,), (2, 0), (0, 2), ()):
    call("unstack", In(shape), dtypes=FEW)
    call("unstack", In(shape), axis=-1)
    call("unstack", In(shape), axis=1)

# Refusals.
call("concatenate", [])
call("concatenate", [In(()), In(())])
call("concatenate", [In((2, 3)), In((4, 4))])
call("stack", [In((2,)), In((1,))])
call("stack", [In((2,)), In((2,))], axis=2)
call("split", In((4, 3)), 2, axis=2)
write("joins")
