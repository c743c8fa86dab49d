// SPDX-License-Identifier: Apache-2.0

#include "fs/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace npyfs {

namespace {

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("npyfs", std::move(sink));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = [] {
    auto first = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    first->set_pattern("npyfs: %l: %v");
    return first;
  }();
  return instance;
}

}  // namespace

void open_log(LogTarget target, bool debug) {
  if (target == LogTarget::kSyslog) {
    logger() = make_logger(
        std::make_shared<spdlog::sinks::syslog_sink_mt>("npyfs", LOG_PID, LOG_DAEMON, true));
    logger()->set_pattern("%v");
  }
  logger()->set_level(debug ? spdlog::level::debug : spdlog::level::info);
}

void log_error(const std::string& text) { logger()->error("{}", text); }
void log_warning(const std::string& text) { logger()->warn("{}", text); }
void log_debug(const std::string& text) { logger()->debug("{}", text); }
bool debug_logged() { return logger()->should_log(spdlog::level::debug); }

}  // namespace npyfs
