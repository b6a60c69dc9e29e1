"""What an import comes to: settings and their sources (`result`), the report, the text of the file."""
