import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { SkilltraceError } from '../../client/errors.js';
import { readLastGroup } from './base/groups.js';
import { useLoad } from './base/load.js';
import { buildHref, useRoute } from './base/route.js';
import { getTimeZone, setTimeZone } from './base/school-days.js';
import { isNewEntry, keepScrollPositions } from './base/scroll.js';
import { consumeAddressKey, createApi, loadKey, removeKey, storeKey } from './base/session.js';
import { ThemeButton } from './base/theme.jsx';
import { type Viewer, ViewerContext } from './base/viewer.js';
import { ClassPage } from './pages/class.jsx';
import { TodayPage } from './pages/today.jsx';
import { Button } from './parts/button.jsx';
import { lazy } from './parts/lazy.jsx';
import { ErrorNote, Loading } from './parts/loaded.jsx';
import { RequireScope, type ScopedPart } from './parts/require-scope.jsx';

const teacherPages = () => import('./pages/teacher-pages.js');
const operatorPages = () => import('./pages/operator-pages.js');

/** Only the first pages are in the first script, so that they appear soon. */
const pages: Readonly<Record<string, ScopedPart>> = {
  today: { title: 'Today', scopes: ['read'], Content: TodayPage },
  class: { title: 'Class', scopes: ['read'], Content: ClassPage },
  learner: { title: 'Learner', scopes: ['read'], Content: lazy(teacherPages, (all) => all.LearnerPage) },
  skills: { title: 'Skills', scopes: ['read'], Content: lazy(teacherPages, (all) => all.SkillsPage) },
  model: { title: 'Model', scopes: ['read'], Content: lazy(teacherPages, (all) => all.ModelPage) },
  live: { title: 'Live', scopes: ['operator'], Content: lazy(operatorPages, (all) => all.LivePage) },
  operations: {
    title: 'Operations',
    scopes: ['admin', 'operator'],
    Content: lazy(operatorPages, (all) => all.OperationsPage),
  },
};

/** The menu opens the class of the address, or else the class that the user opened last. */
const classPages = ['today', 'class'];

consumeAddressKey();
keepScrollPositions();
// The user may open another link with a key in the same tab.
addEventListener('hashchange', () => {
  if (consumeAddressKey()) location.reload();
});

export function App() {
  const [key, setKey] = useState(loadKey);
  const [rejection, setRejection] = useState<string | null>(null);
  const signIn = (entered: string): void => {
    storeKey(entered);
    setKey(entered);
  };
  const signOut = (reason: string | null): void => {
    removeKey();
    setRejection(reason);
    setKey(null);
  };
  if (key === null) return <KeyForm rejection={rejection} onSignIn={signIn} />;
  return <SignedInApp apiKey={key} onSignOut={signOut} />;
}

function KeyForm({ rejection, onSignIn }: { rejection: string | null; onSignIn: (key: string) => void }) {
  const submit = (event: Event): void => {
    event.preventDefault();
    const key = new FormData(event.currentTarget as HTMLFormElement).get('key');
    if (typeof key === 'string' && key.trim() !== '') onSignIn(key.trim());
  };
  return (
    <main class="key-form" id="content">
      <Brand />
      <h1>Sign in to the dashboard</h1>
      {rejection !== null && (
        <p class="note alert" role="alert">
          {rejection}
        </p>
      )}
      <form onSubmit={submit}>
        <label for="key">API key</label>
        <input id="key" name="key" type="password" autocomplete="off" spellcheck={false} required />
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
      <p class="soft">
        This tab stores the key until you close it or sign out. <code>npm start</code> prints a link with a
        development key. <code>npm run keys -- create</code> creates another key.
      </p>
    </main>
  );
}

function SignedInApp({ apiKey, onSignOut }: { apiKey: string; onSignOut: (reason: string | null) => void }) {
  const api = useMemo(() => createApi(apiKey), [apiKey]);
  const ownKey = useLoad((signal) => api.ownKey({ signal }), [api]);
  const isRejected = ownKey.error instanceof SkilltraceError && ownKey.error.code === 'UNAUTHORIZED';
  useEffect(() => {
    if (isRejected)
      onSignOut('Unknown or revoked key. Check the key that you entered, or ask for a new key.');
  }, [isRejected]);
  if (ownKey.error !== null && !isRejected)
    return (
      <main class="key-form" id="content">
        <Brand />
        <ErrorNote error={ownKey.error} retry={ownKey.reload} />
      </main>
    );
  if (ownKey.data === null) return <Loading subject="the dashboard" />;
  setTimeZone(ownKey.data.time_zone);
  return <Frame api={api} ownKey={ownKey.data} onSignOut={() => onSignOut(null)} reloadKey={ownKey.reload} />;
}

function Frame({ api, ownKey, reloadKey, onSignOut }: Omit<Viewer, 'hasScope'> & { onSignOut: () => void }) {
  const route = useRoute();
  const viewer = useMemo(
    (): Viewer => ({ api, ownKey, reloadKey, hasScope: (scope) => ownKey.scopes.includes(scope) }),
    [api, ownKey],
  );
  const visiblePages = Object.entries(pages).filter(([, page]) => page.scopes.some(viewer.hasScope));
  const pageName = route.page === '' ? (visiblePages[0]?.[0] ?? '') : route.page;
  const page =
    pageName === 'about-demo' ? aboutDemo : Object.hasOwn(pages, pageName) ? pages[pageName] : undefined;
  const title = page?.title ?? 'Not found';
  const group = route.query.group ?? readLastGroup(ownKey.tenant);
  useEffect(() => {
    document.title = [...route.args, title, 'Skilltrace'].join(' · ');
  }, [route, title]);
  useFocusOnNavigation([pageName, ...route.args].join('/'));
  return (
    <ViewerContext.Provider value={viewer}>
      <Button class="skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to content
      </Button>
      <header class="top">
        <Brand />
        <nav aria-label="Pages">
          {visiblePages.map(([id, { title }]) => (
            <a
              key={id}
              href={buildHref(id, [], classPages.includes(id) ? { group } : {})}
              aria-current={id === pageName ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <div class="account">
          <span class="soft" title="Tenant of this key">
            {ownKey.tenant}
          </span>
          {ownKey.tenant === 'demo' && <a href={buildHref('about-demo')}>About the demo</a>}
          <a href="/docs">API</a>
          <ThemeButton />
          <Button onClick={onSignOut}>Sign out</Button>
        </div>
      </header>
      <main id="content" tabIndex={-1} aria-label={title}>
        {page === undefined ? (
          <p class="note">
            Page not found. <a href="#/">Open the start page</a>
          </p>
        ) : (
          <RequireScope part={page} route={route} verb="needs" />
        )}
        <TimeZoneNote {...viewer} />
      </main>
    </ViewerContext.Provider>
  );
}

const TimeZoneNote = ({ ownKey: { time_zone }, hasScope }: Viewer) => (
  <p class="soft screen-only">
    Days and times are in the time zone{' '}
    {hasScope('admin') ? <a href={buildHref('operations', ['settings'])}>{getTimeZone()}</a> : getTimeZone()}
    {time_zone !== getTimeZone() && `, because this browser does not know ${time_zone}`}.
  </p>
);

/** Starts at the top, and moves the focus from the menu to the new page, for keyboards and screen readers. */
function useFocusOnNavigation(path: string): void {
  const lastPath = useRef(path);
  useEffect(() => {
    if (lastPath.current === path) return;
    lastPath.current = path;
    if (isNewEntry()) scrollTo(0, 0);
    const { activeElement: focused } = document;
    if (focused !== document.body && focused?.closest('.top') == null) return;
    document.getElementById('content')?.focus({ preventScroll: true });
  }, [path]);
}

const aboutDemo: ScopedPart = {
  title: 'About the demo',
  scopes: ['read'],
  Content: lazy(operatorPages, (all) => all.AboutDemo),
};

const Brand = () => (
  <a class="brand" href="#/">
    <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="brand-back" />
      <path d="M6 23c5 0 5-6 9-9s6-5 11-6" class="brand-line" />
    </svg>
    Skilltrace
  </a>
);
