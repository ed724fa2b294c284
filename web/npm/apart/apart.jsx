/** See apart.js. There is no JSX in it. */
export { load } from './index.js';
