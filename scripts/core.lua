-- What all files of the library have beside what scripts have. luabind/library.go has put into core what is Go's:
-- guarded, with_key, callable, is_array, is_module, is_tree, trees and formula.
local core, fail = ...

-- methods is a table whose functions become methods of a class, which errors name as op. Called of something else than
-- one of its objects, of which is is true, they say so: somebody wrote a dot in the place of a colon. Errors call an
-- object a what, and example in the line that would be right.
function core.methods(class, op, is, what, example)
  return setmetatable({}, {__newindex = function(_, name, method)
    class[name] = function(self, ...)
      if not is(self) then
        fail(op .. "." .. name, ("the first argument is no %s: call it with a colon, %s:%s(...)"):format(what, example,
          name))
      end
      return method(self, ...)
    end
  end})
end
