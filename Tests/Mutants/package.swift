// What follows is appended by `make mutants` to the copy of this file in .build-mutants.
for target in package.targets {
  if !KEPT.contains("VersionPlugin") { target.plugins = nil }
  if MUTATED.contains(target.name) { target.dependencies.append("CMutant") }
}
package.targets.append(.target(name: "CMutant", path: "Tests/Mutants/CMutant"))
package.targets.removeAll { !KEPT.contains($0.name) }
(package.products, package.dependencies, package.traits) = ([], [], [])
