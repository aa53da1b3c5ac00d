import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { SkilltraceError } from '../../client/errors.js';
import type { OwnKey } from '../../client/types.js';
import { useLoad } from './base/load.js';
import { href, useRoute } from './base/route.js';
import { type Api, apiOf, forgetKey, keepKey, storedKey, takeKeyFromAddress } from './base/session.js';
import { ThemeButton } from './base/theme.jsx';
import { type Viewer, ViewerContext } from './base/viewer.js';
import { AboutDemo } from './pages/about-demo.jsx';
import { ClassPage } from './pages/class.jsx';
import { LearnerPage } from './pages/learner.jsx';
import { LivePage } from './pages/live.jsx';
import { ModelPage } from './pages/model.jsx';
import { OperationsPage } from './pages/operations.jsx';
import { SkillsPage } from './pages/skills.jsx';
import { Button } from './parts/button.jsx';
import { ErrorNote, Loading } from './parts/loaded.jsx';
import { Scoped, type ScopedPart } from './parts/scoped.jsx';

const pages: Readonly<Record<string, ScopedPart>> = {
  class: { title: 'Class', scopes: ['read'], Content: ClassPage },
  learner: { title: 'Learner', scopes: ['read'], Content: LearnerPage },
  skills: { title: 'Skills', scopes: ['read'], Content: SkillsPage },
  model: { title: 'Model', scopes: ['read'], Content: ModelPage },
  live: { title: 'Live', scopes: ['operator'], Content: LivePage },
  operations: { title: 'Operations', scopes: ['admin', 'operator'], Content: OperationsPage },
};

takeKeyFromAddress();
// The user may open another link with a key in the same tab.
addEventListener('hashchange', () => {
  if (takeKeyFromAddress()) location.reload();
});

export function App() {
  const [key, setKey] = useState(storedKey);
  const [refused, setRefused] = useState<string | null>(null);
  const enter = (entered: string): void => {
    keepKey(entered);
    setKey(entered);
  };
  const leave = (reason: string | null): void => {
    forgetKey();
    setRefused(reason);
    setKey(null);
  };
  if (key === null) return <KeyForm refused={refused} onEnter={enter} />;
  return <Inside apiKey={key} onLeave={leave} />;
}

function KeyForm({ refused, onEnter }: { refused: string | null; onEnter: (key: string) => void }) {
  const submit = (event: Event): void => {
    event.preventDefault();
    const key = new FormData(event.currentTarget as HTMLFormElement).get('key');
    if (typeof key === 'string' && key.trim() !== '') onEnter(key.trim());
  };
  return (
    <main class="key-form" id="content">
      <Brand />
      <h1>Open the dashboard</h1>
      {refused !== null && (
        <p class="note alert" role="alert">
          {refused}
        </p>
      )}
      <form onSubmit={submit}>
        <label for="key">API key</label>
        <input id="key" name="key" type="password" autocomplete="off" spellcheck={false} required />
        <button type="submit" class="primary">
          Open
        </button>
      </form>
      <p class="soft">
        The key stays in this tab and is forgotten with it. <code>npm start</code> prints a link with a
        development key; <code>npm run keys -- create</code> makes one.
      </p>
    </main>
  );
}

function Inside({ apiKey, onLeave }: { apiKey: string; onLeave: (reason: string | null) => void }) {
  const api = useMemo(() => apiOf(apiKey), [apiKey]);
  const own = useLoad((signal) => api.ownKey({ signal }), [api]);
  const isRefused = own.error instanceof SkilltraceError && own.error.code === 'UNAUTHORIZED';
  useEffect(() => {
    if (isRefused)
      onLeave('This key is not known, or was revoked. Ask for another one, or check what you pasted.');
  }, [isRefused]);
  if (own.error !== null && !isRefused)
    return (
      <main class="key-form" id="content">
        <Brand />
        <ErrorNote error={own.error} retry={own.reload} />
      </main>
    );
  if (own.data === null) return <Loading what="the dashboard" />;
  return <Frame api={api} own={own.data} onLeave={() => onLeave(null)} />;
}

function Frame({ api, own, onLeave }: { api: Api; own: OwnKey; onLeave: () => void }) {
  const route = useRoute();
  const viewer = useMemo(
    (): Viewer => ({ api, own, can: (scope) => own.scopes.includes(scope) }),
    [api, own],
  );
  const open = Object.entries(pages).filter(([, page]) => page.scopes.some(viewer.can));
  const name = route.page === '' ? (open[0]?.[0] ?? '') : route.page;
  const page = name === 'about-demo' ? aboutDemo : Object.hasOwn(pages, name) ? pages[name] : undefined;
  const title = page?.title ?? 'Not found';
  useEffect(() => {
    document.title = [...route.args, title, 'Skilltrace'].join(' · ');
  }, [route, title]);
  useArrival([name, ...route.args].join('/'));
  return (
    <ViewerContext.Provider value={viewer}>
      <Button class="skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to the content
      </Button>
      <header class="top">
        <Brand />
        <nav aria-label="Pages">
          {open.map(([id, { title }]) => (
            <a key={id} href={href(id)} aria-current={id === name ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="whose">
          <span class="soft" title="The tenant whose data this key reaches">
            {own.tenant}
          </span>
          {own.tenant === 'demo' && <a href={href('about-demo')}>About the demo</a>}
          <a href="/docs">API</a>
          <ThemeButton />
          <Button onClick={onLeave}>Leave</Button>
        </div>
      </header>
      <main id="content" tabIndex={-1} aria-label={title}>
        {page === undefined ? (
          <p class="note">
            There is no such page. <a href="#/">Go to the first one</a>
          </p>
        ) : (
          <Scoped of={page} route={route} verb="needs" />
        )}
      </main>
    </ViewerContext.Provider>
  );
}

/** Moves the focus from the menu to the new page, for keyboards and screen readers. */
function useArrival(place: string): void {
  const last = useRef(place);
  useEffect(() => {
    if (last.current === place) return;
    last.current = place;
    const { activeElement: at } = document;
    if (at !== document.body && at?.closest('.top') == null) return;
    document.getElementById('content')?.focus({ preventScroll: true });
  }, [place]);
}

const aboutDemo: ScopedPart = { title: 'About the demo', scopes: ['read'], Content: AboutDemo };

const Brand = () => (
  <a class="brand" href="#/">
    <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="brand-back" />
      <path d="M6 23c5 0 5-6 9-9s6-5 11-6" class="brand-line" />
    </svg>
    Skilltrace
  </a>
);
