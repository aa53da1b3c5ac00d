export { seeded } from '../../src/seeded.js';
