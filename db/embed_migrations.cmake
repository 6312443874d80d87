# cmake -DOUT=... -DFILES=a.sql;b.sql -P embed_migrations.cmake
set(text "#include \"db/sqlite/migrator.h\"\n\nnamespace fusion {\n\nconst std::vector<Migration>& EmbeddedMigrations() {\n  static const auto* migrations = new std::vector<Migration>{\n")
foreach(file IN LISTS FILES)
  file(READ ${file} sql)
  get_filename_component(name ${file} NAME_WE)
  string(APPEND text "      {\"${name}\", R\"~sql~(${sql})~sql~\"},\n")
endforeach()
string(APPEND text "  };\n  return *migrations;\n}\n\n}  // namespace fusion\n")
file(WRITE ${OUT} "${text}")
