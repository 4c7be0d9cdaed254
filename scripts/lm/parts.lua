-- What of a message is no text is refused here: the models read pictures and sound nowhere.

-- It fails for messages with parts that are not text.
return function(messages)
  for i, message in ipairs(messages) do
    local content = type(message) == "table" and type(message.content) == "table" and message.content or {}
    for _, part in ipairs(content) do
      local kind = type(part) == "table" and part.type
      if kind and kind ~= "text" then
        error(("lm: message %d has a part of the type %s: %s"):format(i, tostring(kind),
          "models read text only here, no pictures and no sound"), 0)
      end
    end
  end
end
