// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "backend",
  dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "backend",
      dependencies: [
        .product(name: "HoldfastIssuer", package: "holdfast"), .product(name: "HoldfastCore", package: "holdfast"),
      ])
  ])
