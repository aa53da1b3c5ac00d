import { useEffect, useState } from 'preact/hooks';

type Theme = 'light' | 'dark';

const storageKey = 'skilltrace-theme';
const readSystemTheme = (): Theme => (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');

/** Follows the system theme until the user chooses one. */
export function ThemeButton() {
  const [chosen, choose] = useState(() => localStorage.getItem(storageKey) as Theme | null);
  const theme = chosen ?? readSystemTheme();
  const other = theme === 'dark' ? 'light' : 'dark';
  useEffect(() => {
    if (chosen === null) return;
    document.documentElement.dataset.theme = chosen;
    localStorage.setItem(storageKey, chosen);
  }, [chosen]);
  return (
    <button
      type="button"
      aria-label={`Switch to ${other} theme`}
      title={`Switch to ${other} theme`}
      onClick={() => choose(other)}
    >
      {theme === 'dark' ? '☀' : '☾'}
    </button>
  );
}
