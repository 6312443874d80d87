#include "compiler/plan/mapping_table.h"

namespace fusion {

const MappingCell& CombineMappings(ops::MappingType first, ops::MappingType second) {
  using enum ops::MappingType;
  using enum Colour;
  // Rows and columns in the order of the enum, which is the paper's order of complexity (§3.1, footnote 1).
  static_assert(static_cast<int>(kOneToOne) == 0 && static_cast<int>(kReorganize) == 1 &&
                static_cast<int>(kShuffle) == 2 && static_cast<int>(kOneToMany) == 3 &&
                static_cast<int>(kManyToMany) == 4);
  static constexpr MappingCell kTable[5][5] = {
      // One-to-One             Reorganize               Shuffle                  One-to-Many              Many-to-Many
      {{kOneToOne, kGreen}, {kReorganize, kGreen}, {kShuffle, kGreen}, {kOneToMany, kGreen}, {kManyToMany, kGreen}},
      {{kReorganize, kGreen},
       {kReorganize, kGreen},
       {kReorganize, kGreen},
       {kOneToMany, kYellow},
       {kManyToMany, kYellow}},
      {{kShuffle, kGreen}, {kReorganize, kGreen}, {kShuffle, kGreen}, {kOneToMany, kYellow}, {kManyToMany, kYellow}},
      {{kOneToMany, kGreen}, {kOneToMany, kYellow}, {kOneToMany, kYellow}, {kOneToMany, kYellow}, {kManyToMany, kRed}},
      {{kManyToMany, kGreen},
       {kManyToMany, kYellow},
       {kManyToMany, kYellow},
       {kManyToMany, kYellow},
       {kManyToMany, kRed}},
  };
  return kTable[static_cast<int>(first)][static_cast<int>(second)];
}

const char* ColourName(Colour colour) {
  static const char* const kNames[] = {"green", "yellow", "red"};
  return kNames[static_cast<int>(colour)];
}

}  // namespace fusion
