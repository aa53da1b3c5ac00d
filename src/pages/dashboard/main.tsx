/** The dashboard: pages for teachers, analysts and operators, made of nothing but the API's own answers. */
import { render } from 'preact';
import { App } from './app.jsx';
import './style.css';

render(<App />, document.getElementById('app') as HTMLElement);
