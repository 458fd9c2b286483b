"""A report as one page for a browser: a view of it that knows no HTML, and templates that know no report."""
