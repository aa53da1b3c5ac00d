// Builds everything with esbuild: node src/build.mjs OUT [--bundles | --watch]. Types are checked by `tsc`, not here.
//   OUT/bundle/*.js                  what ships, a bundle for each program: a fifth of the time that 1,400 files take
//   OUT/bundle/{docs,dashboard}/*    pages, their files packed with gzip under their contents' hashes
//   OUT/{src,workers,bench,test}/**  every module by itself, for tests and benchmarks
//   OUT/client/index.js              the client, for Node, browsers, Deno and Bun
//   OUT/typebox/*.js                 what they import of TypeBox: its 700 files take a quarter of a second
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, context } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const SOURCES = ['src', 'workers', 'bench', 'test'];

const CLI = 'audit backtest demo evaluate export fit import keys openapi parked rebuild retain'.split(' ');
const THREADS = ['track', 'forecast', 'fit', 'rebuild', 'retract', 'deliver'];

/**
 * Programs by the names of their bundles. Those of a group share chunks; what is started with the service has a group, and so
 * a file, of its own: to find thirty took a third of a thread's start.
 */
const GROUPS = [
  { main: 'src/main.ts', app: 'src/app/app.ts' },
  { 'api-process': 'src/app/api-process.ts' },
  ...THREADS.map((name) => ({ [name]: `workers/${name}.ts` })),
  { clickhouse: 'src/embedded/clickhouse/server.ts' },
  { 'engine-thread': 'src/embedded/clickhouse/engine-thread.ts' },
  { 'source-maps': 'src/source-maps.ts' },
  Object.fromEntries(CLI.map((name) => [`cli-${name}`, `src/cli/${name}.ts`])),
];

const OUTSIDE = ['uWebSockets.js', 'chdb', 'piscina'];

/** Source maps first, then what packages written for `require` expect to find, under names that no source uses. */
const BANNER = `import './source-maps.js';
import { createRequire as $require } from 'node:module';
import { dirname as $dirname } from 'node:path';
import { fileURLToPath as $path } from 'node:url';
const require = $require(import.meta.url);
const __filename = $path(import.meta.url);
const __dirname = $dirname(__filename);`;

const COMMON = {
  absWorkingDir: ROOT,
  platform: 'node',
  target: 'node20',
  // Names and lines are what stack traces show; the sources themselves are where they were.
  sourcemap: 'linked',
  sourcesContent: false,
  logLevel: 'warning',
  logLimit: 20,
};

const sourceFiles = () =>
  SOURCES.filter((folder) => existsSync(join(ROOT, folder))).flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /(?<!\.d)\.ts$|\.js$/.test(name))
      .map((name) => join(folder, name)),
  );

/** Those that are there: tests of the set-up build a service of a few lines. */
const present = (group) =>
  Object.fromEntries(Object.entries(group).filter(([, file]) => existsSync(join(ROOT, file))));

const bundles = (out, group) => ({
  ...COMMON,
  entryPoints: present(group),
  outdir: join(out, 'bundle'),
  bundle: true,
  splitting: true,
  format: 'esm',
  chunkNames: 'chunk-[hash]',
  external: OUTSIDE,
  // Without comments there are only ASCII characters: V8 keeps two bytes of each where one is not. Short lines, because
  // Node shows the line of an error that nobody caught.
  minifyWhitespace: true,
  lineLimit: 120,
  // Native code of msgpackr's would help to read; BullMQ only writes with it, and looking for it takes 30 ms.
  define: { 'process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED': '"true"' },
  banner: { js: BANNER },
});

/** What Piscina loads, which tries `require` first (workers/entry.cts). */
const threadEntry = (out) => ({
  ...COMMON,
  entryPoints: ['workers/entry.cts'].filter((file) => existsSync(join(ROOT, file))),
  outdir: join(out, 'bundle'),
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
});

/** Without a word of Node's, which platform neutral would not find. */
const client = (out) => ({
  ...COMMON,
  entryPoints: ['src/client/index.ts'].filter((file) => existsSync(join(ROOT, file))),
  outdir: join(out, 'client'),
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
});

const modules = (out) => ({
  ...COMMON,
  entryPoints: sourceFiles(),
  outdir: out,
  outbase: ROOT,
  format: 'esm',
  bundle: true,
  plugins: [importsStay],
});

const TYPEBOX = ['typebox', 'typebox/compile', 'typebox/format', 'typebox/value'];
const flat = (name) => name.replace('/', '-');

/** Each module imports what it says, but for TypeBox, which package.json's `imports` lead to. */
const importsStay = {
  name: 'imports-stay',
  setup: ({ onResolve }) =>
    onResolve({ filter: /.*/ }, ({ path, kind }) =>
      kind === 'entry-point'
        ? undefined
        : { path: TYPEBOX.includes(path) ? `#typebox/${flat(path)}.js` : path, external: true },
    ),
};

const typebox = (out) => ({
  ...COMMON,
  sourcemap: false,
  entryPoints: Object.fromEntries(TYPEBOX.map((name) => [flat(name), name])),
  outdir: join(out, 'typebox'),
  bundle: true,
  splitting: true,
  format: 'esm',
});

const PAGES = { docs: 'page.js', dashboard: 'main.tsx' };

/** A page names its files by their hashes, so that browsers keep them for good. */
async function buildPage(out, name, entry) {
  const source = join('src/pages', name);
  if (!existsSync(join(ROOT, source))) return;
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: { page: join(source, entry) },
    outdir: ROOT,
    entryNames: '[name].[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    metafile: true,
    write: false,
  });
  const folder = join(out, 'bundle', name);
  mkdirSync(folder, { recursive: true });
  let page = readFileSync(join(ROOT, source, 'index.html'), 'utf8');
  for (const { path, contents } of outputFiles) {
    const file = basename(path);
    page = page.replace(file.replace(/\.\w+(?=\.\w+$)/, ''), `${name}/${file}`);
    writeFileSync(join(folder, `${file}.gz`), gzipSync(contents, { level: 9 }));
  }
  writeFileSync(join(folder, 'index.html'), page);
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(Object.keys(metafile.inputs)));
}

/** What the packages behind a page ask to be passed on with them. @param files names of all that is in it */
function licencesOf(files) {
  const folders = files.flatMap((file) => file.match(/.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => /^(licen[cs]e|notice)|license\.txt$/i.test(name))
      .map((name) => `${folder}/${name}\n\n${readFileSync(join(ROOT, folder, name), 'utf8')}`),
  );
  return texts.join('\n\n');
}

async function main([out = 'dist', option]) {
  const all = [
    ...GROUPS.map((group) => bundles(out, group)),
    threadEntry(out),
    client(out),
    ...(option === '--bundles' ? [] : [modules(out), typebox(out)]),
  ];
  for (const [name, entry] of Object.entries(PAGES)) await buildPage(out, name, entry);
  if (option !== '--watch') return void (await Promise.all(all.map(build)));
  for (const one of all) await (await context(one)).watch();
}

await main(process.argv.slice(2)).catch((error) => {
  if (error.errors === undefined) throw error;
  process.exitCode = 1;
});
