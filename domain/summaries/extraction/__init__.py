"""What the extractive summariser takes from blocks, and how it lays it out."""
