import { fileURLToPath } from 'node:url';

/** Path of the project. */
export const root = fileURLToPath(new URL('.', import.meta.resolve('#root/package.json')));
