"""The ground of the package, without tensors: dtypes, errors, warnings, trees, module names."""
