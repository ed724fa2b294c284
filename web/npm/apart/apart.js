/**
 * The package's entry on development servers. Vite bundles dependencies in advance, which separates engine.js from the binary that
 * it finds by its own address (fixed in Vite 8). Vite leaves a .jsx with a query in its place, with all modules behind it, also if
 * another dependency imports the package.
 */
export { load } from './apart.jsx?in-its-place';
