import { readFileSync } from 'node:fs';

const manifest = new URL(import.meta.resolve('#root/package.json'));

export const version: string = JSON.parse(readFileSync(manifest, 'utf8')).version;
