/**
 * The package's entry on development servers. Vite's bundles dependencies ahead, which parts engine.js from the
 * binary that it finds by its own address (Vite 8 mends that, 7 and older do not). A .jsx with a query it leaves in
 * its place, and so all that lies behind: also where another dependency imports the package.
 */
export { load } from './apart.jsx?in-its-place';
