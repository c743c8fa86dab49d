// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/arrays/pad_value.h"
#include "formats/arrays/record_array.h"
#include "formats/extents.h"
#include "formats/payloads/payload_table.h"
#include "formats/tables/survey.h"

namespace npyfs {

namespace {

template <typename T>
const T* chosen(const std::map<std::string, T>& choices, const std::string& name) {
  const auto found = choices.find(name);
  return found != choices.end() ? &found->second : nullptr;
}

std::string first_source(const RecordTable& table) {
  const auto sources = table.sources();
  return sources.empty() ? std::string("source") : sources.front()->name();
}

class FieldLayout {
 public:
  FieldLayout(std::string name, const Field& field, TablePtr table, const FieldChoices& choices,
              const std::function<void(const std::string&)>& warn)
      : name_(std::move(name)),
        field_(field),
        table_(std::move(table)),
        choices_(choices),
        warn_(warn) {
    if (const Layout* layout = chosen(choices_.layout, name_)) {
      layout_ = *layout;
    }
  }

  LaidOutField lay_out() {
    choose_column();
    found_ = survey(*column_, *table_, *choices_.verifier);
    convert();
    require_declared_dtype();
    if (!fits()) {
      fall_back_to_bytes(fmt::format("cannot be one array: {}", found_.odd_record));
      found_ = survey(*column_, *table_, *choices_.verifier);
    }
    result_.rate_hz = column_->rate_hz();
    if (const std::string clash = column_->rate_clash(); !clash.empty()) {
      warn_(fmt::format("{}: the samples of {} are of several rates and none is resampled: {}",
                        first_source(*table_), name_, clash));
    }
    warn_of_absent();
    warn_of_damaged();
    describe_nothing();
    build();
    result_.damaged = found_.damaged->list();
    return std::move(result_);
  }

 private:
  void choose_column() {
    refuse_unmet();
    const DType* dtype = chosen(choices_.dtype, name_);
    const Shape* shape = chosen(choices_.shape, name_);
    const std::string* decode = chosen(choices_.decode, name_);
    const bool stored = layout_ == Layout::kBytes || (decode != nullptr && *decode == "raw");
    if (field_.typed != nullptr && (!stored || field_.bytes == nullptr)) {
      column_ = field_.typed;
      if (dtype != nullptr || shape != nullptr) {
        column_ = redeclare(dtype, shape);
        redeclared_ = true;
      }
      return;
    }
    if (dtype != nullptr || shape != nullptr) {
      column_ = make_declared_column(
          field_.bytes, *table_, dtype != nullptr ? *dtype : DType::simple("|u1"),
          shape != nullptr ? std::optional<Shape>(*shape) : std::nullopt);
      declared_ = true;
      return;
    }
    column_ = make_raw_column(field_.bytes);
    if (!stored) {
      decode_payload();
    }
  }

  // Items of known type that were to be of another: all must have become so.
  void require_declared_dtype() const {
    const DType* dtype = chosen(choices_.dtype, name_);
    if (dtype == nullptr || !redeclared_ || found_.empty || found_.dtype == *dtype) {
      return;
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: --dtype {}={}: its items are {}, expected what they fit in",
                            first_source(*table_), name_, dtype->text(), found_.dtype.text()));
  }

  // A choice that nothing comes of is a mistake.
  void refuse_unmet() const {
    if (table_->size() == 0) {
      return;
    }
    const std::string* decode = chosen(choices_.decode, name_);
    const bool raw = decode != nullptr && *decode == "raw";
    if (field_.bytes == nullptr && (raw || layout_ == Layout::kBytes)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: --{} {}={}: it is of known type and has no bytes of its own",
                              first_source(*table_), raw ? "decode" : "layout", name_,
                              raw ? "raw" : "bytes"));
    }
  }

  // Picks the payload: the one the user named, else the one the first non-empty record holds.
  void decode_payload() {
    const std::string* decode = chosen(choices_.decode, name_);
    const Payload* wanted = decode != nullptr ? payload_of_extension(*decode) : nullptr;
    const auto first = first_payload(field_, *choices_.verifier);
    const Payload* payload = wanted  ? wanted
                             : first ? find_payload(field_, *first)
                                     : payload_of_extension(field_.extension);
    // Payloads that become fields were replaced before this; those left here stay bytes.
    const bool has_items = first || (payload != nullptr && payload->may_be_empty);
    if (payload == nullptr || payload->make == nullptr || !has_items || table_->size() == 0) {
      return;
    }
    try {
      column_ = payload->make({.bytes = field_.bytes,
                               .table = *table_,
                               .verifier = *choices_.verifier,
                               .named = wanted != nullptr || !field_.extension.empty(),
                               .image = choices_.image});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      fall_back_to_bytes(error.what());
    }
  }

  // A field of known type may be given another shape of as many elements.
  std::shared_ptr<const Column> redeclare(const DType* dtype, const Shape* shape);

  // The items differ in type, but one type can hold them all.
  void convert() {
    if (!found_.promoted) {
      return;
    }
    if (auto converted = column_->converted(found_.dtype)) {
      column_ = std::move(converted);
    } else {
      found_.all_alike = found_.same_rows = false;
      found_.odd_record = found_.odd_dtype;
    }
  }

  bool fits() const {
    return found_.all_alike || found_.same_rows || field_.bytes == nullptr || declared_;
  }

  void fall_back_to_bytes(const std::string& why) {
    warn_(fmt::format("{}: {} is shown as stored bytes: {}", first_source(*table_), name_, why));
    column_ = make_raw_column(field_.bytes);
    layout_ = layout_ == Layout::kBytes ? Layout::kAuto : layout_;
  }

  void warn_of_absent() {
    if (found_.absent > 0 && !field_.sparse) {
      warn_(fmt::format("{}: {} lacks {}{}; its rows are left empty", first_source(*table_),
                        record_name(*table_, found_.first_absent), name_,
                        found_.absent > 1 ? fmt::format(" (and {} more)", found_.absent - 1) : ""));
    }
  }

  void warn_of_damaged() {
    found_.faults.tell([&](const std::string& text) {
      result_.damage_texts.push_back(text);
      warn_(text);
    });
  }

  void warn_of_unsized() {
    if (found_.unsized > 0) {
      warn_(fmt::format(
          "{}: {} is damaged and its size is unknown; {} has no rows of it{}",
          first_source(*table_), record_name(*table_, found_.first_unsized), name_,
          found_.unsized > 1 ? fmt::format(" (and of {} more)", found_.unsized - 1) : ""));
    }
  }

  // No item is there: the shape is what was declared, else that of empty bytes.
  void describe_nothing() {
    if (!found_.empty) {
      return;
    }
    const DType* dtype = chosen(choices_.dtype, name_);
    const Shape* shape = chosen(choices_.shape, name_);
    found_.dtype = dtype != nullptr ? *dtype : DType::simple("|u1");
    found_.shape = shape != nullptr ? *shape : Shape{};
    if (shape == nullptr && found_.records > 0) {
      found_.shape = {0};
    }
  }

  void build() {
    ItemsOf of;
    of.column = column_;
    of.table = table_;
    of.dtype = found_.dtype;
    of.shape = found_.shape;
    of.damaged = found_.damaged;
    const Layout layout = pick_layout();
    if (layout != Layout::kPad && layout != Layout::kConcat) {
      add(name_, ArrayRecipe::Form::kStack, stacked(std::make_shared<const Items>(std::move(of))));
      return;
    }
    of.offsets = take_offsets();
    ArrayRecipe recipe = stacked(std::make_shared<const Items>(std::move(of)));
    if (layout == Layout::kConcat) {
      warn_of_unsized();
      recipe.starts = std::make_shared<const Starts>(*recipe.items, recipe.map);
      add(name_, ArrayRecipe::Form::kConcat, recipe);
      add(name_ + "_offsets", ArrayRecipe::Form::kOffsets, recipe);
    } else {
      recipe.most_rows = most_rows(*recipe.items, recipe.map);
      recipe.pad_value = pad_element(choices_.pad_value, found_.dtype, name_);
      add(name_, ArrayRecipe::Form::kPad, recipe);
      add(name_ + "_lengths", ArrayRecipe::Form::kLengths, recipe);
    }
  }

  void add(const std::string& name, ArrayRecipe::Form form, ArrayRecipe recipe) {
    recipe.form = form;
    ArrayPtr array = make_record_array(recipe);
    result_.arrays.push_back({name, std::move(array), std::move(recipe)});
  }

  Layout pick_layout() const {
    const bool alike = found_.all_alike && found_.absent == 0;
    if (!found_.same_rows) {
      throw file_error(ErrorKind::kUnsupported, first_source(*table_),
                       fmt::format("{} cannot be one array: {}", name_, found_.odd_record));
    }
    switch (layout_) {
      case Layout::kStack:
        if (!alike) {
          throw Error(
              ErrorKind::kUsage,
              fmt::format("{}: --layout {}=stack needs items of one shape, but {}; take concat or "
                          "pad",
                          first_source(*table_), name_, why_not_alike()));
        }
        return Layout::kStack;
      case Layout::kPad:
      case Layout::kConcat:
        return layout_;
      case Layout::kAuto:
      case Layout::kBytes:
        break;
    }
    return alike && !field_.time_series && !column_->time_series() ? Layout::kStack
                                                                   : Layout::kConcat;
  }

  std::string why_not_alike() const {
    return found_.odd_record.empty() ? record_name(*table_, found_.first_absent) + " lacks it"
                                     : found_.odd_record;
  }

  // Null where all items have one length.
  OffsetsPtr take_offsets() {
    const auto rows = std::exchange(found_.rows, {});
    if (rows.empty()) {
      return nullptr;
    }
    auto offsets = std::make_shared<Offsets>();
    offsets->reserve(rows.size() + 1);
    std::int64_t sum = 0;
    offsets->push_back(sum);
    for (const std::uint64_t own : rows) {
      if (__builtin_add_overflow(sum, own, &sum)) {
        throw file_error(ErrorKind::kTooLarge, first_source(*table_),
                         fmt::format("{} has more than 2^63 rows", name_));
      }
      offsets->push_back(sum);
    }
    return offsets;
  }

  std::string name_;
  const Field& field_;
  TablePtr table_;
  const FieldChoices& choices_;
  const std::function<void(const std::string&)>& warn_;
  Layout layout_ = Layout::kAuto;
  bool declared_ = false;
  bool redeclared_ = false;  // of known type, and shown as another
  std::shared_ptr<const Column> column_;
  Survey found_;
  LaidOutField result_;
};

// Items of a field of known type in another shape; the bytes are the same.
class ReshapedColumn : public Column {
 public:
  ReshapedColumn(std::shared_ptr<const Column> base, Shape shape, std::string name, TablePtr table)
      : base_(std::move(base)),
        shape_(std::move(shape)),
        name_(std::move(name)),
        table_(std::move(table)) {}

  std::shared_ptr<const Column> converted(const DType& dtype) const override {
    auto converted_base = base_->converted(dtype);
    return converted_base == nullptr
               ? nullptr
               : std::make_shared<ReshapedColumn>(std::move(converted_base), shape_, name_, table_);
  }
  std::uint64_t size() const override { return base_->size(); }
  bool decoded(std::uint64_t record) const override { return base_->decoded(record); }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    base_->plan(record, range, plan);
  }
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    base_->decode(record, out, context);
  }
  std::uint64_t run(std::uint64_t record) const override { return base_->run(record); }
  std::uint64_t shard_run(std::uint64_t record) const override { return base_->shard_run(record); }
  bool time_series() const override { return base_->time_series(); }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t known) const override {
    return base_->text_length(record, known);
  }
  std::optional<std::uint32_t> rate_hz() const override { return base_->rate_hz(); }
  std::string rate_clash() const override { return base_->rate_clash(); }
  std::optional<Item> uniform() const override {
    std::optional<Item> item = base_->uniform();
    if (item && size() > 0) {
      reshape(0, *item);
    }
    return item;
  }
  void inspect(std::uint64_t record, Item& item) const override {
    base_->inspect(record, item);
    if (item.present && item.damage == nullptr) {
      reshape(record, item);
    }
  }

 private:
  void reshape(std::uint64_t record, Item& item) const {
    if (element_count(item.shape) != element_count(shape_)) {
      throw file_error(ErrorKind::kCorrupt, first_source(*table_),
                       fmt::format("{} of {} is {}, expected as many elements as {}; correct "
                                   "--shape",
                                   name_, record_name(*table_, record), shape_text(item.shape),
                                   shape_text(shape_)));
    }
    item.shape = shape_;
  }

  std::shared_ptr<const Column> base_;
  Shape shape_;
  std::string name_;
  TablePtr table_;
};

std::shared_ptr<const Column> FieldLayout::redeclare(const DType* dtype, const Shape* shape) {
  std::shared_ptr<const Column> column = field_.typed;
  if (dtype != nullptr) {
    Item item;
    for (std::uint64_t record = 0; record < field_.typed->size(); ++record) {
      item.present = true;
      item.damage = nullptr;
      field_.typed->inspect(record, item);
      if (item.present && item.damage == nullptr) {
        break;
      }
    }
    const bool differs = !item.dtype.descr.empty() && !(item.dtype == *dtype);
    if (auto converted = column->converted(*dtype)) {
      column = std::move(converted);
    } else if (differs) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: --dtype {}={}: the source says it is {}", first_source(*table_),
                              name_, dtype->text(), item.dtype.text()));
    }
  }
  if (shape == nullptr) {
    return column;
  }
  return std::make_shared<ReshapedColumn>(std::move(column), *shape, name_, table_);
}

}  // namespace

LaidOutField lay_out(const std::string& name, const Field& field, const TablePtr& table,
                     const FieldChoices& choices,
                     const std::function<void(const std::string&)>& warn) {
  return FieldLayout(name, field, table, choices, warn).lay_out();
}

}  // namespace npyfs
