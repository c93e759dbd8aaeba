#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "placement/rules.h"

namespace sardonyx {

/// Reads sardonyx.placement:
///
///   config  := entry (';' entry)*
///   entry   := 'strict' | device ['!'] '(' item (',' item)* ')' | nothing
///   item    := text | '=' text | '~' regex | '@' text | '@=' text | '*'
///   text    := bare, with ranges "[0-15]" and "[0,2,4-7]", or "quoted", with \" and \\ only
///
/// Errors   InvalidArgument for everything else, with the place.
Result<std::vector<Rule>> parse_placement(std::string_view text);

}  // namespace sardonyx
