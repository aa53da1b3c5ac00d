#!/usr/bin/env node
// Entry of the npm scripts and of the package's program `skilltrace`: installs and builds if something has changed, then runs
// the command in the same process, so that it receives signals. Imports only Node modules: no package may be installed yet.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { lockDir } from './dir-lock.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');
const SUPPORTED_NODE = [20, 22];
const SOURCES = ['src', 'workers', 'bench', 'test'];
const SHOWN_LINES = 15;
const { existsSync, readdirSync, rmSync, writeFileSync } = fs;

const COMMANDS = {
  start: { about: 'start the service', module: 'bundle/main.js' },
  test: { about: 'run all tests, or files with an argument in their names', module: 'test/main.js' },
  'test:full': { about: 'run the long tests', module: 'test/full-main.js' },
  import: { about: 'import a file of answers', module: 'bundle/cli-import.js' },
  demo: { about: 'fill a tenant with a generated school, or remove it', module: 'bundle/cli-demo.js' },
  export: { about: 'export the rows of a tenant to Parquet, CSV or NDJSON', module: 'bundle/cli-export.js' },
  evaluate: { about: 'measure the predictions on a file of answers', module: 'bundle/cli-evaluate.js' },
  backtest: { about: 'measure the forecasts on a file of answers', module: 'bundle/cli-backtest.js' },
  fit: { about: 'fit the models, or activate another version', module: 'bundle/cli-fit.js' },
  retain: { about: 'delete old answers and keep their daily sums', module: 'bundle/cli-retain.js' },
  audit: { about: 'check that every accepted answer is stored', module: 'bundle/cli-audit.js' },
  rebuild: { about: 'restore Redis from ClickHouse, or compare them', module: 'bundle/cli-rebuild.js' },
  openapi: { about: 'write the OpenAPI document', module: 'bundle/cli-openapi.js' },
  keys: { about: 'create, list and revoke API keys', module: 'bundle/cli-keys.js' },
  parked: { about: 'list or redrive dead-letter rows', module: 'bundle/cli-parked.js' },
  bench: { about: 'run the benchmark', module: 'bench/main.js' },
};

const pathIn = (...parts) => join(ROOT, ...parts);
const say = (line) => process.stderr.write(`skilltrace: ${line}\n`);

const IS_PACKAGE = !existsSync(pathIn('src/build.mjs'));
if (IS_PACKAGE) for (const name of ['test', 'test:full', 'bench']) delete COMMANDS[name];

const readText = (file) => (existsSync(file) ? fs.readFileSync(file, 'utf8') : '');

class SetupError extends Error {}

// During set-up, a signal ends the child processes and this one.

/** @type {import('node:child_process').ChildProcess | undefined} */
let child;
let stopSignal = '';

function onSignal(signal) {
  stopSignal = signal;
  if (child?.pid === undefined) process.exit(exitCodeOf(signal));
  // Signals the process group: npm starts children.
  process.kill(-child.pid, 'SIGTERM');
}

/** A service that is stopped before it started has succeeded. */
const exitCodeOf = (signal) => (process.argv[2] === 'start' ? 0 : signal === 'SIGINT' ? 130 : 143);

async function run(command, args) {
  child = spawn(command, args, { cwd: ROOT, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const group = child;
  let output = '';
  const keep = (chunk) => {
    output += chunk;
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const code = await new Promise((settle, fail) => {
    group.once('error', fail);
    group.once('close', settle);
  });
  child = undefined;
  if (stopSignal !== '') process.exit(exitCodeOf(stopSignal));
  return { code, output };
}

async function runOrFail(what, command, args) {
  const since = performance.now();
  if (process.stderr.isTTY) say(`${what} ...`);
  const { code, output } = await run(command, args).catch((error) => ({ code: 1, output: error.message }));
  if (code !== 0) throw new SetupError(`${what} failed\n${shorten(output)}`, { cause: output });
  if (process.stderr.isTTY) say(`${what}: ${((performance.now() - since) / 1000).toFixed(1)} s`);
}

/** The reason is at the beginning (npm, esbuild) or the end (install scripts). */
function shorten(output) {
  const lines = output.trimEnd().split('\n');
  if (lines.length > 2 * SHOWN_LINES) lines.splice(SHOWN_LINES, lines.length - 2 * SHOWN_LINES, '...');
  return lines.join('\n');
}

const sha256 = (...parts) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');
const packagesStamp = pathIn('node_modules', '.skilltrace-setup');
const packagesKey = () => sha256(process.platform, process.arch, readText(pathIn('package-lock.json')));
const packagesReady = () => readText(packagesStamp) === packagesKey();

function installedByHand() {
  const hidden = readText(pathIn('node_modules', '.package-lock.json'));
  if (hidden === '') return false;
  const installed = JSON.parse(hidden).packages;
  const { '': _, ...wanted } = JSON.parse(readText(pathIn('package-lock.json'))).packages;
  return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
    const found = installed[path];
    if (found === undefined) return optional === true;
    return found.version === version && found.integrity === integrity && existsSync(pathIn(path));
  });
}

/**
 * `npm ci` rejects a lock file without the optional packages of every platform (EUSAGE). npm writes one if
 * the registry lacks some of them. `npm install` installs the same versions.
 */
async function npmInstall() {
  const flags = ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  try {
    await runOrFail('installing npm packages', 'npm', ['ci', ...flags]);
  } catch (error) {
    if (!/\bEUSAGE\b/.test(error.cause)) throw error;
    await runOrFail('installing npm packages', 'npm', ['install', '--no-save', ...flags]);
  }
}

async function installPackages() {
  if (packagesReady()) return;
  if (!installedByHand()) await npmInstall();
  writeFileSync(packagesStamp, packagesKey());
}

function buildKey() {
  const sources = SOURCES.filter((folder) => existsSync(pathIn(folder))).flatMap((folder) =>
    readdirSync(pathIn(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(c?tsx?|js|css|html)$/.test(name))
      .map((name) => join(folder, name))
      .sort(),
  );
  const settings = ['src/build.mjs', 'tsconfig.json', 'package.json', 'package-lock.json'];
  return sha256(...[...sources, ...settings].flatMap((name) => [name, '\0', readText(pathIn(name)), '\0']));
}

const buildStamp = join(DIST, '.skilltrace-setup');
const buildReady = () => readText(buildStamp) === buildKey();

/** Builds into a new folder and swaps, so that a half-built dist never runs. */
async function build() {
  const key = buildKey();
  if (readText(buildStamp) === key) return;
  const fresh = pathIn('dist.tmp');
  const old = pathIn('dist-old.tmp');
  for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
  await runOrFail('building', process.execPath, [pathIn('src', 'build.mjs'), fresh]);
  writeFileSync(join(fresh, '.skilltrace-setup'), key);
  if (existsSync(DIST)) fs.renameSync(DIST, old);
  fs.renameSync(fresh, DIST);
  rmSync(old, { recursive: true, force: true });
}

const LOCK_DIR = pathIn('.setup-lock');

async function withLock(work) {
  fs.mkdirSync(LOCK_DIR, { recursive: true });
  let lock = lockDir(LOCK_DIR);
  if ('heldBy' in lock) say(`waiting for the setup of process ${lock.heldBy.pid} in this folder`);
  for (; 'heldBy' in lock; lock = lockDir(LOCK_DIR)) await sleep(200);
  try {
    await work();
  } finally {
    lock.release();
  }
}

function help() {
  const [program, separator, note] = IS_PACKAGE
    ? ['npx skilltrace', '', ' In the help, npm run COMMAND -- stands for npx skilltrace COMMAND.']
    : ['npm run', ' --', ''];
  const lines = Object.entries(COMMANDS).map(
    ([name, { about }]) => `  ${program} ${name.padEnd(10)} ${about}\n`,
  );
  return `Usage: ${program} COMMAND${separator} [options]\n\nCommands:\n${lines.join('')}\nRun a command with --help to list its options.${note}\n`;
}

async function prepare() {
  if (IS_PACKAGE || (packagesReady() && buildReady())) return;
  await withLock(async () => {
    await installPackages();
    await build();
  });
}

async function prepack() {
  await prepare();
  await runOrFail('writing types', pathIn('node_modules/.bin/tsc'), ['-p', 'src/client']);
}

async function main([name, ...args]) {
  const major = Number(process.versions.node.split('.')[0]);
  if (!SUPPORTED_NODE.includes(major)) {
    throw new SetupError(
      `Node ${process.versions.node} is not supported. Install Node ${SUPPORTED_NODE.join(' or ')}`,
    );
  }
  if (name === undefined || name === '--help' || name === '-h') {
    process.stdout.write(help());
    return;
  }
  if (name === 'prepack' && !IS_PACKAGE) return prepack();
  if (!Object.hasOwn(COMMANDS, name)) throw new SetupError(`Unknown command ${name}\n${help()}`);
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, onSignal);
  await prepare();
  // For modules that are not bundled.
  await import(pathToFileURL(join(DIST, 'bundle/source-maps.js')).href);
  const command = await import(pathToFileURL(join(DIST, COMMANDS[name].module)).href);
  // The command attaches its signal handlers in its first synchronous part. Until then ours are needed:
  // without a handler, Node would ignore a signal.
  const running = command.main(args);
  for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, onSignal);
  await running;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  // For a StartError, see src/lifecycle.ts.
  const forUser =
    error instanceof SetupError || error?.name === 'StartError' || error?.name === 'ConfigError';
  say(forUser ? error.message : (error?.stack ?? String(error)));
  process.exitCode = 1;
}
