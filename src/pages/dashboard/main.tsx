/** The dashboard. All data come from the API. */
import { render } from 'preact';
import { App } from './app.jsx';
import './style.css';

render(<App />, document.getElementById('app') as HTMLElement);
