#include "compiler/plan/mapping_table.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

using enum ops::MappingType;

constexpr ops::MappingType kTypes[] = {kOneToOne, kReorganize, kShuffle, kOneToMany, kManyToMany};

TEST(MappingTable, CountsOfColours) {
  int counts[3] = {0, 0, 0};
  for (ops::MappingType first : kTypes) {
    for (ops::MappingType second : kTypes) ++counts[static_cast<int>(CombineMappings(first, second).colour)];
  }
  EXPECT_EQ(counts[static_cast<int>(Colour::kGreen)], 13);
  EXPECT_EQ(counts[static_cast<int>(Colour::kYellow)], 10);
  EXPECT_EQ(counts[static_cast<int>(Colour::kRed)], 2);
}

TEST(MappingTable, OneToOneTakesTheOtherTypeAndIsGreen) {
  for (ops::MappingType other : kTypes) {
    for (const MappingCell& cell : {CombineMappings(kOneToOne, other), CombineMappings(other, kOneToOne)}) {
      EXPECT_EQ(cell.fused, other);
      EXPECT_EQ(cell.colour, Colour::kGreen);
    }
  }
}

TEST(MappingTable, ManyDecidesTheTypeAndIsProfiledOrRefused) {
  for (ops::MappingType many : {kOneToMany, kManyToMany}) {
    for (ops::MappingType index_map : {kReorganize, kShuffle}) {
      for (const MappingCell& cell : {CombineMappings(many, index_map), CombineMappings(index_map, many)}) {
        EXPECT_EQ(cell.fused, many);
        EXPECT_EQ(cell.colour, Colour::kYellow);
      }
    }
    EXPECT_EQ(CombineMappings(many, kManyToMany).colour, Colour::kRed);
    EXPECT_EQ(CombineMappings(many, kOneToMany).colour, Colour::kYellow);
    EXPECT_EQ(CombineMappings(many, kOneToMany).fused, many);
  }
}

TEST(MappingTable, IndexMapsAmongThemselves) {
  EXPECT_EQ(CombineMappings(kShuffle, kShuffle).fused, kShuffle);
  EXPECT_EQ(CombineMappings(kShuffle, kReorganize).fused, kReorganize);
  EXPECT_EQ(CombineMappings(kReorganize, kShuffle).fused, kReorganize);
  EXPECT_EQ(CombineMappings(kReorganize, kReorganize).colour, Colour::kGreen);
}

}  // namespace
}  // namespace fusion
