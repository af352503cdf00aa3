-- SPDX-License-Identifier: Apache-2.0
-- Values as text, for people at a prompt: tables with their content, in bounded size.
local host = ...
local M = {}

local MAX_ITEMS, MAX_TEXT, MAX_DEPTH = 20, 400, 3

local show

local function show_text(text)
  if #text > MAX_TEXT then
    text = text:sub(1, MAX_TEXT) .. "..."
  end
  return (string.format("%q", text):gsub("\\\n", "\\n"))
end

local function show_key(key, describe)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" then
    return key
  end
  return "[" .. show(key, MAX_DEPTH, describe) .. "]"
end

local function show_table(value, depth, describe)
  if next(value) == nil then
    return "{}"
  end
  if depth >= MAX_DEPTH then
    return "{ ... }"
  end
  local items, count, listed = {}, 0, #value
  local indent = string.rep("  ", depth + 1)
  for k = 1, math.min(listed, MAX_ITEMS) do
    items[#items + 1] = show(value[k], depth + 1, describe)
  end
  for key, item in host.pairs(value) do
    local in_list = math.type(key) == "integer" and key >= 1 and key <= listed
    count = count + 1
    if not in_list and #items < MAX_ITEMS then
      items[#items + 1] = show_key(key, describe) .. " = " .. show(item, depth + 1, describe)
    end
  end
  local more = count > #items and string.format("... %d in all", count) or nil
  local line = "{ " .. table.concat(items, ", ") .. (more and ", " .. more or "") .. " }"
  if #line + 2 * depth <= 90 and not line:find("\n", 1, true) then
    return line
  end
  items[#items + 1] = more
  return "{\n" .. indent .. table.concat(items, "\n" .. indent) .. "\n"
    .. string.rep("  ", depth) .. "}"
end

function show(value, depth, describe)
  local text = describe(value)
  if text then
    return text
  elseif type(value) == "string" then
    return show_text(value)
  elseif type(value) ~= "table" or host.getmetatable(value) ~= nil then
    return host.tostring(value)
  end
  return show_table(value, depth, describe)
end

---Values as text, a line or more for each.
---@param describe fun(value: any): string? text of values that have their own
function M.lines(describe, ...)
  local lines = {}
  for k = 1, select("#", ...) do
    lines[k] = show((select(k, ...)), 0, describe)
  end
  return table.concat(lines, "\n")
end

return M
