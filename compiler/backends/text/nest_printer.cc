#include "compiler/backends/text/nest_printer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::text {

using te::Scalar;

void NestPrinter::OpenLoop(const movement::Loop& loop) { OpenPoints({loop}, kernel_, 1, out_); }

std::string NestPrinter::Place(const movement::Store& store) const {
  return absl::StrCat("b", store.buffer, "[", IndexText(store.address, axis_name_, kernel_), "]");
}

ExprPrinter::Options NestPrinter::ScalarOptions(std::vector<PrintedValue> accs) {
  return {&kernel_, axis_name_, -1, 1, "", std::move(accs), next_temp_};
}

void NestPrinter::OpenUnmasked() {
  if (!step_.lane_limit) return out_->Open("");
  out_->Open(absl::StrCat("if (!(", BoundText(*step_.lane_limit, AxisText, kernel_), "))"));
  for (const movement::Store& store : step_.stores)
    out_->Line(StoreText(kernel_.buffers[store.buffer], Place(store), "0"));
  out_->Close();
  out_->Open("else");
}

void NestPrinter::StoreScalars(const std::vector<Scalar>& values, const std::vector<PrintedValue>& accs) {
  ExprPrinter printer(out_, ScalarOptions(accs));
  for (size_t o = 0; o < step_.stores.size(); ++o) {
    const std::string value = values.empty() ? accs[o].text : printer.Emit(values[o]).text;
    out_->Line(StoreText(kernel_.buffers[step_.stores[o].buffer], Place(step_.stores[o]), value));
  }
}

std::string NestPrinter::Combine(te::ReductionKind kind, const std::string& acc, const std::string& x, DType dtype) {
  switch (kind) {
    case te::ReductionKind::kSum:
      return IsFloat(dtype) ? absl::StrCat(acc, " += ", x, ";")
                            : absl::StrCat(acc, " = (", CType(dtype), ")((u64)", acc, " + (u64)", x, ");");
    case te::ReductionKind::kProd:
      return IsFloat(dtype) ? absl::StrCat(acc, " *= ", x, ";")
                            : absl::StrCat(acc, " = (", CType(dtype), ")((u64)", acc, " * (u64)", x, ");");
    case te::ReductionKind::kMax:
      return absl::StrCat(acc, " = ", TypedName("smax", dtype), "(", x, ", ", acc, ");");
    case te::ReductionKind::kMin:
      return absl::StrCat(acc, " = ", TypedName("smin", dtype), "(", x, ", ", acc, ");");
    case te::ReductionKind::kGeneral:
      break;
  }
  return "";
}

std::string NestPrinter::Horizontal(const te::Reduction& reduction, const std::string& v) {
  const char* const name = reduction.kind == te::ReductionKind::kSum   ? "hadd"
                           : reduction.kind == te::ReductionKind::kMax ? "hmax"
                                                                       : "hmin";
  return absl::StrCat(name, IsFloat(reduction.acc) ? "_f32" : "_i32", "(", v, ")");
}

void NestPrinter::PrintResult(const std::string& acc) {
  OpenUnmasked();
  StoreScalars(step_.then, {{acc, false}});
  out_->Close();
}

}  // namespace fusion::text
