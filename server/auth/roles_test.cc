#include "server/auth/roles.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using testing::HasSubstr;

TEST(RolesTest, NamesReadBack) {
  EXPECT_EQ(NamesOf({Role::kClient, Role::kAdmin}), "client,admin");
  EXPECT_EQ(NamesOf({}), "none");
  EXPECT_EQ(NamesInWords({Role::kBuild, Role::kMeasure}), "build or measure");
  for (const Role a : AllRoles()) {
    for (const Role b : AllRoles()) EXPECT_EQ(RolesOf(NamesOf({a, b})), RoleSet({a, b}));
  }
  EXPECT_TRUE(RolesOf("none").empty());
  EXPECT_EQ(RolesOf("client,conductor"), RoleSet({Role::kClient})) << "a role of a newer program gives nothing";
  EXPECT_TRUE(RolesOf("Admin, admin").empty()) << "names are exact";
}

TEST(RolesTest, UnknownNamesAreRefused) {
  EXPECT_EQ(*ParseRoles({"build", "measure"}), RoleSet({Role::kBuild, Role::kMeasure}));
  for (const char* name : {"", "root", "join", "client,admin ", "ADMIN"}) {
    const auto roles = ParseRoles({"client", name});
    ASSERT_FALSE(roles.ok()) << name;
    EXPECT_THAT(roles.status().message(), HasSubstr("client or build or untrusted-build or measure or admin"));
  }
}

TEST(RolesTest, NoRoleImpliesAnother) {
  for (const Role a : AllRoles()) {
    for (const Role b : AllRoles()) EXPECT_EQ(RoleSet({a}).HasAnyOf({b}), a == b);
    EXPECT_FALSE(RoleSet().Has(a));
  }
  EXPECT_FALSE(RoleSet().HasAnyOf(RoleSet::All()));
}

TEST(RolesTest, AMethodThatIsNotInTheTableIsForNobody) {
  EXPECT_TRUE(RolesFor("/fusion.v1.Compile/Submi").empty());
  EXPECT_TRUE(RolesFor("").empty());
  EXPECT_FALSE(RolesFor("/fusion.v1.Compile/Submit").empty());
}

}  // namespace
}  // namespace fusion
