-- SPDX-License-Identifier: Apache-2.0
-- Completion of the word that a line at a prompt ends with.
local M = {}

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function",
  "goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until",
  "while" }

---Where the word begins (from 0), and the words that it may become, one a line.
---@param line string
---@param source { names: fun(): string[], fields: fun(path: string, word: string): string[],
---  quoted: fun(word: string): string[] } names alone, after "a.b." or "a.b:", and after a quote
function M.complete(line, source)
  local word = line:match "[%w_]*$"
  local before = line:sub(1, #line - #word)
  local path = before:match "([%a_][%w_%.]*)[%.:]$"
  local lists
  if before:match "[\"']$" then
    lists = { source.quoted(word) }
  elseif path then
    lists = { source.fields(path, word) }
  else
    lists = { source.names(), KEYWORDS }
  end
  local found, seen = {}, {}
  for _, list in ipairs(lists) do
    for _, name in ipairs(list) do
      if name:sub(1, #word) == word and not seen[name] then
        seen[name] = true
        found[#found + 1] = name
      end
    end
  end
  table.sort(found)
  return #before, table.concat(found, "\n")
end

return M
