// Fields: typed reads of one JSON object of a manifest. The first failure is kept in the status, INVALID_ARGUMENT with
// the path to the field; later reads do nothing. `status` and the object must outlive it.
#ifndef FUSION_RUNTIME_BUNDLE_JSON_FIELDS_H_
#define FUSION_RUNTIME_BUNDLE_JSON_FIELDS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/dtype.h"

namespace fusion {

using Json = nlohmann::ordered_json;

class Fields {
 public:
  Fields(const Json& object, std::string path, absl::Status* status)
      : object_(object), path_(std::move(path)), status_(status) {
    if (!object.is_object()) Fail("", "is not an object");
  }

  void Read(const char* key, std::string* out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(key, "is not a string");
    *out = value->get<std::string>();
  }
  void Read(const char* key, int64_t* out) {
    const Json* value = Find(key);
    if (value != nullptr) ReadInt(key, *value, out);
  }
  void Read(const char* key, int* out) {
    if (const Json* value = Find(key)) ReadInt(key, *value, out);
  }
  void Read(const char* key, double* out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_number()) return Fail(key, "is not a number");
    *out = value->get<double>();
  }
  void Read(const char* key, bool* out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(key, "is neither true nor false");
    *out = value->get<bool>();
  }
  void Read(const char* key, DType* out) {
    std::string name;
    Read(key, &name);
    const auto dtype = ParseDType(name);
    if (!dtype.has_value()) return Fail(key, "is not an element type");
    *out = *dtype;
  }
  void Read(const char* key, std::vector<int64_t>* out) {
    Each(key, [&](const Json& item, const std::string&) { ReadInt(key, item, &out->emplace_back()); });
  }
  template <size_t n>
  void Read(const char* key, std::array<int64_t, n>* out) {
    std::vector<int64_t> values;
    Read(key, &values);
    if (values.size() != n) return Fail(key, absl::StrCat("does not hold ", n, " integers"));
    std::copy(values.begin(), values.end(), out->begin());
  }
  void Read(const char* key, std::vector<int>* out) {
    Each(key, [&](const Json& item, const std::string&) { ReadInt(key, item, &out->emplace_back()); });
  }
  void Read(const char* key, std::vector<std::vector<int>>* out) {
    Each(key, [&](const Json& item, const std::string&) {
      if (!item.is_array()) return Fail(key, "holds something that is not an array");
      std::vector<int>& list = out->emplace_back();
      for (const Json& number : item) ReadInt(key, number, &list.emplace_back());
    });
  }
  void Read(const char* key, std::vector<std::string>* out) {
    Each(key, [&](const Json& item, const std::string&) {
      if (!item.is_string()) return Fail(key, "holds something that is not a string");
      out->push_back(item.get<std::string>());
    });
  }
  void Read(const char* key, std::map<std::string, int64_t>* out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, "is not an object");
    for (const auto& [name, number] : value->items()) ReadInt(key, number, &(*out)[name]);
  }
  void Read(const char* key, std::map<std::string, std::string>* out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, "is not an object");
    for (const auto& [name, text] : value->items()) {
      if (!text.is_string()) return Fail(key, "holds something that is not a string");
      (*out)[name] = text.template get<std::string>();
    }
  }
  // Calls visit(item, path) for each item of an array.
  template <typename Visit>
  void Each(const char* key, Visit visit) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(key, "is not an array");
    for (size_t i = 0; i < value->size() && status_->ok(); ++i)
      visit((*value)[i], absl::StrCat(path_, key, "[", i, "]."));
  }
  void Fail(const std::string& key, absl::string_view why) {
    if (status_->ok()) *status_ = absl::InvalidArgumentError(absl::StrCat("manifest: ", path_, key, " ", why));
  }

 private:
  const Json* Find(const char* key) {
    if (!status_->ok()) return nullptr;
    const auto it = object_.find(key);
    if (it == object_.end()) {
      Fail(key, "is missing");
      return nullptr;
    }
    return &*it;
  }
  void ReadInt(const char* key, const Json& value, int64_t* out) {
    if (value.is_number_unsigned()) {
      const uint64_t wide = value.get<uint64_t>();
      if (wide > static_cast<uint64_t>(INT64_MAX)) return Fail(key, "is out of range");
      *out = static_cast<int64_t>(wide);
    } else if (value.is_number_integer()) {
      *out = value.get<int64_t>();
    } else {
      Fail(key, "is not an integer");
    }
  }
  void ReadInt(const char* key, const Json& value, int* out) {
    int64_t wide = 0;
    ReadInt(key, value, &wide);
    if (wide < INT32_MIN || wide > INT32_MAX) return Fail(key, "is out of range");
    *out = static_cast<int>(wide);
  }

  const Json& object_;
  std::string path_;
  absl::Status* status_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BUNDLE_JSON_FIELDS_H_
