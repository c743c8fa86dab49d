// SPDX-License-Identifier: Apache-2.0
//
// Our codecs as filters of libhdf5, which has but a few of its own. For the child only.

#pragma once

namespace npyfs {

// Once, before a file is opened.
void register_filters();

}  // namespace npyfs
